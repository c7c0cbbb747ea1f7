/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compiler reads this file before each source of the library for MPICH. It makes references to
 * MPICH weak, so that with LD_BIND_NOW, too, the library may be preloaded into programs without it.
 */
#ifndef COLLNET_MPICH_WEAK_H
#define COLLNET_MPICH_WEAK_H

#pragma weak PMPI_Abort
#pragma weak PMPI_Add_error_class
#pragma weak PMPI_Add_error_string
#pragma weak PMPI_Allgather
#pragma weak PMPI_Allgather_c
#pragma weak PMPI_Allgatherv
#pragma weak PMPI_Allgatherv_c
#pragma weak PMPI_Allreduce
#pragma weak PMPI_Allreduce_c
#pragma weak PMPI_Alltoall
#pragma weak PMPI_Alltoall_c
#pragma weak PMPI_Alltoallv
#pragma weak PMPI_Alltoallv_c
#pragma weak PMPI_Alltoallw
#pragma weak PMPI_Alltoallw_c
#pragma weak PMPI_Barrier
#pragma weak PMPI_Bcast
#pragma weak PMPI_Bcast_c
#pragma weak PMPI_Comm_call_errhandler
#pragma weak PMPI_Comm_create_keyval
#pragma weak PMPI_Comm_disconnect
#pragma weak PMPI_Comm_dup
#pragma weak PMPI_Comm_free
#pragma weak PMPI_Comm_get_attr
#pragma weak PMPI_Comm_get_name
#pragma weak PMPI_Comm_group
#pragma weak PMPI_Comm_rank
#pragma weak PMPI_Comm_set_attr
#pragma weak PMPI_Comm_set_errhandler
#pragma weak PMPI_Comm_size
#pragma weak PMPI_Comm_test_inter
#pragma weak PMPI_Exscan
#pragma weak PMPI_Exscan_c
#pragma weak PMPI_Finalize
#pragma weak PMPI_Gather
#pragma weak PMPI_Gather_c
#pragma weak PMPI_Gatherv
#pragma weak PMPI_Gatherv_c
#pragma weak PMPI_Grequest_complete
#pragma weak PMPI_Grequest_start
#pragma weak PMPI_Group_compare
#pragma weak PMPI_Group_free
#pragma weak PMPI_Init
#pragma weak PMPI_Init_thread
#pragma weak PMPI_Op_commutative
#pragma weak PMPI_Pack
#pragma weak PMPI_Query_thread
#pragma weak PMPI_Reduce
#pragma weak PMPI_Reduce_c
#pragma weak PMPI_Reduce_local
#pragma weak PMPI_Reduce_scatter
#pragma weak PMPI_Reduce_scatter_block
#pragma weak PMPI_Reduce_scatter_block_c
#pragma weak PMPI_Reduce_scatter_c
#pragma weak PMPI_Request_free
#pragma weak PMPI_Request_get_status
#pragma weak PMPI_Scan
#pragma weak PMPI_Scan_c
#pragma weak PMPI_Scatter
#pragma weak PMPI_Scatter_c
#pragma weak PMPI_Scatterv
#pragma weak PMPI_Scatterv_c
#pragma weak PMPI_Status_set_cancelled
#pragma weak PMPI_Status_set_elements
#pragma weak PMPI_Type_commit
#pragma weak PMPI_Type_create_hindexed
#pragma weak PMPI_Type_free
#pragma weak PMPI_Type_get_envelope_c
#pragma weak PMPI_Type_get_extent
#pragma weak PMPI_Type_get_true_extent
#pragma weak PMPI_Type_size
#pragma weak PMPI_Unpack

#endif
