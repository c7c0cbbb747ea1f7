/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compiler reads this file before each source of the library for MPICH. It makes references to
 * MPICH weak, so that with LD_BIND_NOW, too, the library may be preloaded into programs without it.
 */
#ifndef COLLNET_MPICH_WEAK_H
#define COLLNET_MPICH_WEAK_H

#include <mpi.h>

#pragma weak PMPI_Abort
#pragma weak PMPI_Add_error_class
#pragma weak PMPI_Add_error_code
#pragma weak PMPI_Add_error_string
#pragma weak PMPI_Allreduce
#pragma weak PMPI_Barrier
#pragma weak PMPI_Bcast
#pragma weak PMPI_Comm_call_errhandler
#pragma weak PMPI_Comm_create_keyval
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
#pragma weak PMPI_Error_string
#pragma weak PMPI_Grequest_complete
#pragma weak PMPI_Grequest_start
#pragma weak PMPI_Group_compare
#pragma weak PMPI_Group_free
#pragma weak PMPI_Group_intersection
#pragma weak PMPI_Group_size
#pragma weak PMPI_Op_commutative
#pragma weak PMPI_Pack
#pragma weak PMPI_Query_thread
#pragma weak PMPI_Reduce_local
#pragma weak PMPI_Request_free
#pragma weak PMPI_Request_get_status
#pragma weak PMPI_Status_set_cancelled
#pragma weak PMPI_Status_set_elements
#pragma weak PMPI_Type_commit
#pragma weak PMPI_Type_create_hindexed
#pragma weak PMPI_Type_free
#pragma weak PMPI_Type_get_envelope
#pragma weak PMPI_Type_get_envelope_c
#pragma weak PMPI_Type_get_extent
#pragma weak PMPI_Type_get_true_extent
#pragma weak PMPI_Type_size
#pragma weak PMPI_Unpack

#endif
